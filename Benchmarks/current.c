// A minimal `btcctl current` in C: connects, calls, and prints time and price. The lower bound for the comparison.
//
//     current SOCKET
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

static const char call[] = "{\"method\":\"io.btcpriced.Price.GetPrice\"}";

int main(int argc, char **argv)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    if (argc != 2 || strlen(argv[1]) >= sizeof address.sun_path)
        return 64;
    strcpy(address.sun_path, argv[1]);
    int descriptor = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connect(descriptor, (struct sockaddr *)&address, sizeof address) != 0)
        return 69;
    if (send(descriptor, call, sizeof call, MSG_NOSIGNAL) != sizeof call)
        return 69;

    char reply[8192];
    size_t length = 0;
    do {
        ssize_t count = recv(descriptor, reply + length, sizeof reply - length, 0);
        if (count <= 0)
            return 69;
        length += (size_t)count;
    } while (reply[length - 1] != '\0' && length < sizeof reply);
    if (reply[length - 1] != '\0')
        return 69;

    char *value = strstr(reply, "\"value\":\""), *timestamp = strstr(reply, "\"timestamp\":");
    if (value == NULL || timestamp == NULL)
        return 1;
    double price = strtod(value + 9, NULL);
    time_t seconds = strtoll(timestamp + 12, NULL, 10) / 1000;
    struct tm parts;
    char time_text[32];
    strftime(time_text, sizeof time_text, "%b %-d, %H:%M", localtime_r(&seconds, &parts));
    long long cents = (long long)(price * 100 + 0.5);
    char whole[32], grouped[48];
    int digits = snprintf(whole, sizeof whole, "%lld", cents / 100), at = 0;
    for (int index = 0; index < digits; index++) {
        if (index > 0 && (digits - index) % 3 == 0)
            grouped[at++] = ',';
        grouped[at++] = whole[index];
    }
    grouped[at] = '\0';
    return printf("%s - $%s.%02lld\n", time_text, grouped, cents % 100) < 0 ? 74 : 0;
}
