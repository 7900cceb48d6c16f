// Calls a server on a Unix socket as fast as it replies, over a number of connections at once, each with one pending call.
//
//     load SOCKET bare|parameters|spaces|redis CONNECTIONS SECONDS
//
// bare, parameters, spaces: calls GetPrice as btcctl, systemd's clients and Python's json write it; a reply ends with a NUL. redis: GET
// price; the reply contains its length. Prints the calls per second. The first 0.3 s do not count.
#define _GNU_SOURCE
#include <sys/epoll.h>
#include <time.h>

#include "connecting.h"

static const char *const forms[][2] = {
    { "bare", "{\"method\":\"io.btcpriced.Price.GetPrice\"}" },
    { "parameters", "{\"method\":\"io.btcpriced.Price.GetPrice\",\"parameters\":{}}" },
    { "spaces", "{\"method\": \"io.btcpriced.Price.GetPrice\", \"parameters\": {}}" },
    { "redis", "*2\r\n$3\r\nGET\r\n$5\r\nprice\r\n" },
};

struct connection {
    int descriptor;
    size_t got, wanted; // of a reply; wanted 0: not known yet
};

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
    if (argc != 5)
        return 64;
    int is_redis = strcmp(argv[2], "redis") == 0, count = atoi(argv[3]);
    const char *call = NULL;
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        if (strcmp(argv[2], forms[i][0]) == 0)
            call = forms[i][1];
    if (call == NULL)
        return 64;
    size_t length = strlen(call) + !is_redis; // with its NUL

    struct connection *connections = calloc((size_t)count, sizeof *connections);
    int epoll = epoll_create1(EPOLL_CLOEXEC);
    for (int i = 0; i < count; i++) {
        connections[i].descriptor = connected(argv[1]);
        struct epoll_event event = { .events = EPOLLIN, .data.u32 = (uint32_t)i };
        if (epoll_ctl(epoll, EPOLL_CTL_ADD, connections[i].descriptor, &event) != 0)
            fail("epoll_ctl");
    }
    long done = 0;
    double time = now(), warm = time + 0.3, end = warm + atof(argv[4]);
    for (int i = 0; i < count; i++)
        transmit(connections[i].descriptor, call, length);
    static char buffer[65536];
    struct epoll_event events[256];
    while (time < end) {
        int ready = epoll_wait(epoll, events, 256, 1000);
        if (ready <= 0)
            fail("no answer");
        time = now();
        for (int i = 0; i < ready; i++) {
            struct connection *one = &connections[events[i].data.u32];
            ssize_t got = recv(one->descriptor, buffer, sizeof buffer, 0);
            if (got <= 0)
                fail("recv");
            if (is_redis && one->wanted == 0)
                one->wanted = strtoul(buffer + 1, NULL, 10) + (size_t)(strchr(buffer, '\n') - buffer) + 3;
            one->got += (size_t)got;
            if (is_redis ? one->got < one->wanted : buffer[got - 1] != '\0')
                continue;
            done += time >= warm;
            one->got = one->wanted = 0;
            transmit(one->descriptor, call, length);
        }
    }
    printf("%.0f\n", (double)done / (time - warm));
    return 0;
}
