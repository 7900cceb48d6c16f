// Watches a daemon over a number of connections.
//
//     watch SOCKET varlink CONNECTIONS TICKS
//     watch SOCKET redis CONNECTIONS PUBLISHES FILE      PUBLISH of FILE's bytes, to as many subscribers
//
// Prints the time in milliseconds until the last watcher has a tick or a publish: the median. A tick's time begins at the observation in
// its state (CLOCK_BOOTTIME), so the whole way from the price counts.
#define _GNU_SOURCE
#include <sys/epoll.h>
#include <time.h>

#include "connecting.h"

static const char watch_call[] = "{\"method\":\"io.btcpriced.Price.WatchPrice\",\"more\":true}";
static const char subscribe[] = "*2\r\n$9\r\nSUBSCRIBE\r\n$5\r\nprice\r\n";

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_BOOTTIME, &time);
    return (double)time.tv_sec * 1e3 + (double)time.tv_nsec / 1e6;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
    if (argc < 5)
        return 64;
    int is_redis = strcmp(argv[2], "redis") == 0, count = atoi(argv[3]), rounds = atoi(argv[4]);
    static char payload[65536], publish[66000], buffer[65536];
    size_t length = 0;
    if (is_redis) {
        FILE *file = fopen(argv[5], "rb");
        size_t size = file ? fread(payload, 1, sizeof payload, file) : 0;
        length = (size_t)snprintf(publish, sizeof publish, "*3\r\n$7\r\nPUBLISH\r\n$5\r\nprice\r\n$%zu\r\n", size);
        memcpy(publish + length, payload, size);
        memcpy(publish + length + size, "\r\n", 2);
        length += size + 2;
    }
    int epoll = epoll_create1(EPOLL_CLOEXEC), publisher = is_redis ? connected(argv[1]) : -1;
    for (int i = 0; i < count; i++) {
        struct epoll_event event = { .events = EPOLLIN, .data.fd = connected(argv[1]) };
        transmit(event.data.fd, is_redis ? subscribe : watch_call, is_redis ? sizeof subscribe - 1 : sizeof watch_call);
        // The current state, or the confirmation of the subscription: complete in one piece.
        if (recv(event.data.fd, buffer, sizeof buffer, 0) <= 0)
            fail("recv");
        if (epoll_ctl(epoll, EPOLL_CTL_ADD, event.data.fd, &event) != 0)
            fail("epoll_ctl");
    }
    fprintf(stderr, "ready\n");

    double *took = calloc((size_t)rounds, sizeof *took), begun = 0, next_publish = now() + 500;
    int round = 0, reached = 0;
    long tick = 0;
    struct epoll_event events[256];
    while (round < rounds) {
        if (is_redis && begun == 0 && now() >= next_publish) {
            begun = now();
            transmit(publisher, publish, length);
        }
        int ready = epoll_wait(epoll, events, 256, 100);
        for (int i = 0; i < ready; i++) {
            ssize_t got = recv(events[i].data.fd, buffer, sizeof buffer - 1, 0);
            if (got <= 0)
                fail("recv");
            if (!is_redis) {
                // The last message, if several have arrived.
                char *found = NULL;
                buffer[got] = '\0';
                for (char *at = buffer; (at = memmem(at, (size_t)(buffer + got - at), "\"tick\":", 7)) != NULL; at += 7)
                    found = at;
                long its = found ? strtol(found + 7, NULL, 10) : 0;
                if (its < tick)
                    continue;
                if (its > tick) {
                    tick = its;
                    reached = 0;
                    char *observed = strstr(found, "\"observedBoottime\":");
                    begun = observed ? strtod(observed + 19, NULL) : now();
                }
            }
            if (++reached < count)
                continue;
            took[round++] = now() - begun;
            reached = 0;
            begun = 0;
            next_publish = now() + 500;
            if (is_redis && recv(publisher, buffer, sizeof buffer, 0) <= 0)
                fail("recv");
        }
    }
    qsort(took, (size_t)rounds, sizeof *took, ascending);
    printf("%.1f\n", took[rounds / 2]);
    return 0;
}
