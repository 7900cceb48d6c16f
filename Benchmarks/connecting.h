// Shared by the programs that connect to a server.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static void fail(const char *what)
{
    perror(what);
    exit(69);
}

static int connected(const char *path)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    int descriptor = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (descriptor < 0 || connect(descriptor, (struct sockaddr *)&address, sizeof address) != 0)
        fail(path);
    return descriptor;
}

static void transmit(int descriptor, const void *bytes, size_t length)
{
    if (send(descriptor, bytes, length, MSG_NOSIGNAL) != (ssize_t)length)
        fail("send");
}
