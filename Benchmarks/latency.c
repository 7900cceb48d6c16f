/* Measures from the exchange's last byte to the watcher's line: the exchange and the watchers are one process with one clock.
 *
 *     latency COUNT
 *
 * Prints the exchange's port. Then reads from standard input the path of btc-priced's socket. For comparison, a child requests the price
 * from the same exchange as often, over its own connection, and writes it to a Unix socket: the same two hops with nothing in between.
 *
 * Every response has another price, and a watcher's time ends when it has read that price. Prints the microseconds within which half of
 * the prices arrived, for the socket and for the child. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "connecting.h"

enum { MAXIMUM = 100000, WATCHERS = 2 };

struct watcher {
    int fd;
    char price[32]; /* the last price sent on the connection of its exchange */
    double sent;
    double *took;
    int count;
};

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e6 + t.tv_nsec / 1e3;
}

static int listening(int *port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (bind(fd, (struct sockaddr *)&address, size) || listen(fd, 16) || getsockname(fd, (struct sockaddr *)&address, &size))
        exit(1);
    *port = ntohs(address.sin_port);
    return fd;
}

/* The minimum between an exchange and a watcher: requests, extracts the price, and writes it. */
static void relay(int port, int out, long interval)
{
    static const char request[] = "GET /api/v3/ticker/price?symbol=BTCUSDT HTTP/1.1\r\nHost: relay\r\n\r\n";
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int one = 1, fd = socket(AF_INET, SOCK_STREAM, 0);
    struct timespec due;
    if (connect(fd, (struct sockaddr *)&address, sizeof address))
        exit(1);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    clock_gettime(CLOCK_MONOTONIC, &due);
    for (;;) {
        char answer[2048];
        if (write(fd, request, sizeof request - 1) < 0)
            exit(0);
        ssize_t got = read(fd, answer, sizeof answer - 1);
        if (got <= 0)
            exit(0);
        answer[got] = 0;
        char *price = strstr(answer, "\"price\":\"");
        if (price) {
            price += 9;
            char *end = strchr(price, '"');
            *end++ = '\n';
            if (write(out, price, end - price) < 0)
                exit(0);
        }
        due.tv_nsec += interval;
        if (due.tv_nsec >= 1000000000) {
            due.tv_nsec -= 1000000000;
            due.tv_sec++;
        }
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &due, NULL);
    }
}

static int ascending(const void *a, const void *b)
{
    double difference = *(const double *)a - *(const double *)b;
    return (difference > 0) - (difference < 0);
}

static void took(struct watcher *watcher, const char *line)
{
    if (!watcher->price[0] || !strstr(line, watcher->price))
        return;
    if (watcher->count < MAXIMUM)
        watcher->took[watcher->count++] = now() - watcher->sent;
    watcher->price[0] = 0;
}

int main(int count, char **words)
{
    if (count < 2)
        return 64;
    int wanted = atoi(words[1]), port, listener = listening(&port), pair[2];
    printf("%d\n", port);
    fflush(stdout);
    char path[108];
    if (scanf("%107s", path) != 1 || socketpair(AF_UNIX, SOCK_STREAM, 0, pair))
        return 1;
    pid_t child = fork();
    if (child == 0) {
        cpu_set_t first;
        CPU_ZERO(&first);
        CPU_SET(0, &first);
        sched_setaffinity(0, sizeof first, &first);
        prctl(PR_SET_PDEATHSIG, SIGTERM);
        relay(port, pair[1], 100000000);
    }
    int watch = connected(path);
    static const char call[] = "{\"method\":\"io.btcpriced.Price.WatchPrice\",\"more\":true}";
    transmit(watch, call, sizeof call);
    struct watcher watchers[WATCHERS] = {{.fd = watch}, {.fd = pair[0]}};
    for (int i = 0; i < WATCHERS; i++)
        watchers[i].took = malloc(MAXIMUM * sizeof(double));
    struct pollfd ready[16];
    int used = WATCHERS + 1;
    long number = 0;
    for (int i = 0; i < WATCHERS; i++)
        ready[i] = (struct pollfd){.fd = watchers[i].fd, .events = POLLIN};
    ready[WATCHERS] = (struct pollfd){.fd = listener, .events = POLLIN};
    while (watchers[0].count < wanted || watchers[1].count < wanted) {
        if (poll(ready, used, 10000) <= 0)
            return 2;
        for (int i = 0; i < used; i++) {
            if (!ready[i].revents)
                continue;
            char buffer[65536];
            if (i == WATCHERS) {
                int one = 1, fd = accept(listener, NULL, NULL);
                setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
                if (fd >= 0 && used < 16)
                    ready[used++] = (struct pollfd){.fd = fd, .events = POLLIN};
                continue;
            }
            ssize_t got = read(ready[i].fd, buffer, sizeof buffer - 1);
            if (got <= 0) {
                if (i < WATCHERS)
                    return 3;
                close(ready[i].fd);
                ready[i--] = ready[--used];
                continue;
            }
            for (ssize_t at = 0; at < got; at++)
                if (!buffer[at])
                    buffer[at] = '\n';
            buffer[got] = 0;
            if (i < WATCHERS) {
                took(&watchers[i], buffer);
                continue;
            }
            char price[32], body[128], answer[512];
            snprintf(price, sizeof price, "%ld.%03ld1", 68000 + number / 1000 % 100, number % 1000); /* the last digit is not a zero, which would not be shown */
            number++;
            int length = snprintf(body, sizeof body, "{\"symbol\":\"BTCUSDT\",\"price\":\"%s0000\"}", price);
            length = snprintf(answer, sizeof answer, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", length, body);
            struct watcher *watcher = &watchers[strstr(buffer, "Host: relay") != NULL];
            strcpy(watcher->price, price);
            watcher->sent = now();
            if (write(ready[i].fd, answer, length) < 0)
                return 4;
        }
    }
    kill(child, SIGTERM);
    for (int i = 0; i < WATCHERS; i++) {
        struct watcher *w = &watchers[i];
        qsort(w->took, w->count, sizeof(double), ascending);
        printf("%.0f\n", w->took[w->count / 2]);
    }
    return 0;
}
