// Reads trades from a WebSocket server on this machine and prints the price of each as a line: what is possible at best.
//
//   relay PORT TARGET
//
// Not a client of the whole protocol: it believes the server, and knows whole text frames and pings only.

#define _GNU_SOURCE
#include <arpa/inet.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static int server;
static unsigned char buffer[1 << 20];
static size_t filled, used;

static void need(size_t count) {
    if (filled - used < count && used > 0) {
        memmove(buffer, buffer + used, filled - used);
        filled -= used;
        used = 0;
    }
    while (filled - used < count) {
        ssize_t got = filled < sizeof buffer ? read(server, buffer + filled, sizeof buffer - filled) : 0;
        if (got <= 0) exit(0);
        filled += (size_t)got;
    }
}

static void print_price(const char *text, size_t length) {
    static const char mark[] = "\"p\":\"";
    const char *price = memmem(text, length, mark, sizeof mark - 1);
    if (!price) return;
    price += sizeof mark - 1;
    const char *end = memchr(price, '"', (size_t)(text + length - price));
    if (!end) return;
    char line[64];
    int count = snprintf(line, sizeof line, "%.*s\n", (int)(end - price), price);
    if (write(STDOUT_FILENO, line, (size_t)count) != count) exit(0);
}

int main(int argc, char **argv) {
    if (argc != 3) return 64;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(argv[1])), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    server = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(server, (struct sockaddr *)&address, sizeof address) != 0) return 69;
    dprintf(
        server,
        "GET %s HTTP/1.1\r\nHost: 127.0.0.1:%s\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\n\r\n",
        argv[2], argv[1]);
    for (int line_ends = 0; line_ends < 4;) {
        need(1);
        line_ends = buffer[used] == "\r\n\r\n"[line_ends] ? line_ends + 1 : 0;
        used += 1;
    }
    dprintf(STDOUT_FILENO, "open\n");
    for (;;) {
        need(2);
        unsigned char opcode = buffer[used] & 0x0f;
        size_t length = buffer[used + 1], head = length == 126 ? 4 : length == 127 ? 10 : 2;
        need(head);
        if (head > 2) {
            length = 0;
            for (size_t index = 2; index < head; index++) length = length << 8 | buffer[used + index];
        }
        if (length > sizeof buffer / 2) return 65;
        need(head + length);
        const unsigned char *payload = buffer + used + head;
        if (opcode == 1) print_price((const char *)payload, length);
        if (opcode == 9 && length <= 125) {
            // With a mask of zeros the payload stays as it is.
            unsigned char pong[131] = {0x8a, (unsigned char)(0x80 | length), 0, 0, 0, 0};
            memcpy(pong + 6, payload, length);
            if (write(server, pong, length + 6) < 0) return 0;
        }
        used += head + length;
    }
}
