// Watches a daemon over a number of connections, and calls GetPrice without a pause on one more.
//
//     watch SOCKET varlink CONNECTIONS TICKS
//     watch SOCKET redis CONNECTIONS PUBLISHES FILE      PUBLISH of FILE's bytes, to as many subscribers
//
// Prints the time in milliseconds until the last watcher has a tick or a publish: the median and the longest. Then the number of ticks
// that arrived before the last watcher had the tick before. Then, for the calls during such a time, the 99th percentile in milliseconds
// and their number. A tick's time begins at the observation in its state (CLOCK_BOOTTIME), so the whole way from the price counts.
#define _GNU_SOURCE
#include <stdint.h>
#include <sys/epoll.h>
#include <time.h>

#include "connecting.h"

static const char watch_call[] = "{\"method\":\"io.btcpriced.Price.WatchPrice\",\"more\":true}";
static const char price_call[] = "{\"method\":\"io.btcpriced.Price.GetPrice\"}";
static const char subscribe[] = "*2\r\n$9\r\nSUBSCRIBE\r\n$5\r\nprice\r\n";
static const char get[] = "*2\r\n$3\r\nGET\r\n$5\r\nprice\r\n";

static double now(clockid_t clock)
{
    struct timespec time;
    clock_gettime(clock, &time);
    return (double)time.tv_sec * 1e3 + (double)time.tv_nsec / 1e6;
}

static void call(int descriptor, const char *text, size_t length)
{
    if (send(descriptor, text, length, MSG_NOSIGNAL) != (ssize_t)length)
        fail("send");
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
    size_t size = 0, length = 0;
    if (is_redis) {
        FILE *file = fopen(argv[5], "rb");
        size = file ? fread(payload, 1, sizeof payload, file) : 0;
        length = (size_t)snprintf(publish, sizeof publish, "*3\r\n$7\r\nPUBLISH\r\n$5\r\nprice\r\n$%zu\r\n", size);
        memcpy(publish + length, payload, size);
        memcpy(publish + length + size, "\r\n", 2);
        length += size + 2;
    }
    int epoll = epoll_create1(EPOLL_CLOEXEC), caller = connected(argv[1]), publisher = is_redis ? connected(argv[1]) : -1;
    int *descriptors = malloc((size_t)count * sizeof *descriptors);
    for (int i = 0; i < count; i++) {
        descriptors[i] = connected(argv[1]);
        call(descriptors[i], is_redis ? subscribe : watch_call, is_redis ? sizeof subscribe - 1 : sizeof watch_call);
        // The current state, or the confirmation of the subscription: complete in one piece.
        if (recv(descriptors[i], buffer, sizeof buffer, 0) <= 0)
            fail("recv");
        struct epoll_event event = { .events = EPOLLIN, .data.u32 = (uint32_t)i };
        if (epoll_ctl(epoll, EPOLL_CTL_ADD, descriptors[i], &event) != 0)
            fail("epoll_ctl");
    }
    fprintf(stderr, "ready\n");
    struct epoll_event event = { .events = EPOLLIN, .data.u32 = UINT32_MAX };
    epoll_ctl(epoll, EPOLL_CTL_ADD, caller, &event);

    double *last = calloc((size_t)rounds + 2, sizeof *last), *waited = malloc(sizeof *waited * 1000000);
    double called = now(CLOCK_MONOTONIC), begun = 0, begun_here = 0, ended_here = 0, next_publish = called + 500;
    int calls = 0, round = 0, reached = 0, missed = 0;
    long tick = 0;
    const char *plain = is_redis ? get : price_call;
    size_t plain_length = is_redis ? sizeof get - 1 : sizeof price_call;
    call(caller, plain, plain_length);
    struct epoll_event events[256];
    while (round < rounds) {
        if (is_redis && begun == 0 && now(CLOCK_MONOTONIC) >= next_publish) {
            begun = now(CLOCK_BOOTTIME);
            begun_here = now(CLOCK_MONOTONIC);
            call(publisher, publish, length);
        }
        int ready = epoll_wait(epoll, events, 256, 100);
        for (int i = 0; i < ready; i++) {
            uint32_t which = events[i].data.u32;
            int descriptor = which == UINT32_MAX ? caller : descriptors[which];
            ssize_t got = recv(descriptor, buffer, sizeof buffer - 1, 0);
            if (got <= 0)
                fail("recv");
            double here = now(CLOCK_MONOTONIC);
            if (which == UINT32_MAX) {
                // Only calls that overlap with a fan-out count.
                if (calls < 1000000 && (begun != 0 ? here > begun_here : called < ended_here))
                    waited[calls++] = here - called;
                called = here;
                call(caller, plain, plain_length);
                continue;
            }
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
                    // A new tick before all watchers had the last one counts as a miss, after the first complete tick.
                    if (reached > 0 && round > 0)
                        missed++;
                    tick = its;
                    reached = 0;
                    char *observed = strstr(found, "\"observedBoottime\":");
                    begun = observed ? strtod(observed + 19, NULL) : now(CLOCK_BOOTTIME);
                    begun_here = here;
                }
            }
            if (++reached < count)
                continue;
            last[round++] = now(CLOCK_BOOTTIME) - begun;
            reached = 0;
            begun = 0;
            ended_here = now(CLOCK_MONOTONIC);
            next_publish = ended_here + 500;
            if (is_redis && recv(publisher, buffer, sizeof buffer, 0) <= 0)
                fail("recv");
        }
    }
    qsort(last, (size_t)rounds, sizeof *last, ascending);
    qsort(waited, (size_t)calls, sizeof *waited, ascending);
    printf("%.1f %.1f %d %.2f %d\n", last[rounds / 2], last[rounds - 1], missed, calls ? waited[calls * 99 / 100] : 0.0, calls);
    return 0;
}
