// Calls a server on a Unix socket as fast as it replies, over a number of connections at once, each with one pending call.
//
//     load SOCKET bare|parameters|spaces|redis CONNECTIONS SECONDS
//
// bare, parameters, spaces: calls GetPrice as btcctl, systemd's clients and Python's json write it; a reply ends with a NUL. redis: GET
// price; the reply contains its length. Prints the calls per second, and the duration of a call in microseconds: the median, the 99th
// percentile, the longest.
#define _GNU_SOURCE
#include <stdint.h>
#include <sys/epoll.h>
#include <time.h>

#include "connecting.h"

static const char *const forms[][2] = {
    { "bare", "{\"method\":\"io.btcpriced.Price.GetPrice\"}" },
    { "parameters", "{\"method\":\"io.btcpriced.Price.GetPrice\",\"parameters\":{}}" },
    { "spaces", "{\"method\": \"io.btcpriced.Price.GetPrice\", \"parameters\": {}}" },
};
static const char redis_call[] = "*2\r\n$3\r\nGET\r\n$5\r\nprice\r\n";

struct connection {
    int descriptor;
    size_t got, wanted; // of a reply; wanted 0: not known yet
    uint64_t begun;
};

static uint64_t now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static int ascending(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
    if (argc != 5)
        return 64;
    int is_redis = strcmp(argv[2], "redis") == 0, count = atoi(argv[3]);
    double seconds = atof(argv[4]);
    const char *call = is_redis ? redis_call : NULL;
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
    size_t capacity = 1 << 24, done = 0;
    uint32_t *took = malloc(capacity * sizeof *took);
    uint64_t start = now(), warm = start + 300000000u, end = warm + (uint64_t)(seconds * 1e9), counted_from = 0;
    for (int i = 0; i < count; i++) {
        connections[i].begun = now();
        if (send(connections[i].descriptor, call, length, MSG_NOSIGNAL) != (ssize_t)length)
            fail("send");
    }
    static char buffer[65536];
    struct epoll_event events[256];
    for (uint64_t time = start; time < end;) {
        int ready = epoll_wait(epoll, events, 256, 1000);
        if (ready <= 0)
            fail("no answer");
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
            time = now();
            if (time >= warm) {
                if (counted_from == 0)
                    counted_from = time;
                if (done < capacity)
                    took[done++] = (uint32_t)(time - one->begun);
            }
            one->got = one->wanted = 0;
            one->begun = time;
            if (send(one->descriptor, call, length, MSG_NOSIGNAL) != (ssize_t)length)
                fail("send");
        }
    }
    double passed = (double)(now() - counted_from) / 1e9;
    qsort(took, done, sizeof *took, ascending);
    printf("%.0f %.1f %.1f %.1f\n", (double)done / passed, took[done / 2] / 1e3, took[done / 100 * 99] / 1e3, took[done - 1] / 1e3);
    return 0;
}
