// The lower bound: an epoll loop that reads up to a NUL and sends the same bytes each time. No parser, no limits, no counters.
//
//     loop SOCKET FILE      FILE holds the reply, its NUL included
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    if (argc != 3)
        return 64;
    static char reply[65536], buffer[65536];
    FILE *file = fopen(argv[2], "rb");
    size_t length = file ? fread(reply, 1, sizeof reply, file) : 0;
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    strncpy(address.sun_path, argv[1], sizeof address.sun_path - 1);
    int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (length == 0 || bind(listener, (struct sockaddr *)&address, sizeof address) != 0 || listen(listener, 4096) != 0)
        return 69;
    int epoll = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event event = { .events = EPOLLIN, .data.fd = listener }, events[64];
    epoll_ctl(epoll, EPOLL_CTL_ADD, listener, &event);
    for (;;) {
        int ready = epoll_wait(epoll, events, 64, -1);
        for (int i = 0; i < ready; i++) {
            int descriptor = events[i].data.fd;
            if (descriptor == listener) {
                int one = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
                if (one < 0)
                    continue;
                event = (struct epoll_event){ .events = EPOLLIN, .data.fd = one };
                epoll_ctl(epoll, EPOLL_CTL_ADD, one, &event);
                continue;
            }
            ssize_t got = recv(descriptor, buffer, sizeof buffer, 0);
            if (got <= 0)
                close(descriptor);
            else if (memchr(buffer, 0, (size_t)got) != NULL && send(descriptor, reply, length, MSG_NOSIGNAL) < 0)
                close(descriptor);
        }
    }
}
