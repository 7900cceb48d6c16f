/* The state of the price from btc-priced, as JSON without a library: cc -o price price.c && ./price
   Read it with a library such as Jansson, and keep quote.value as text: it is an exact decimal. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

int main(void) {
    const char *path = getenv("BTC_PRICED_SOCKET");
    /* A price that is older than a minute is an error. The call ends with the NUL of the string. */
    static const char call[] = "{\"method\":\"io.btcpriced.Price.GetPrice\",\"parameters\":{\"maxAgeMs\":60000}}";
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct timeval timeout = {.tv_sec = 5};
    static char reply[1 << 16];
    size_t length = 0;
    int daemon = socket(AF_UNIX, SOCK_STREAM, 0);

    snprintf(address.sun_path, sizeof address.sun_path, "%s", path ? path : "/run/btc-priced/io.btcpriced.Price");
    setsockopt(daemon, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout);
    if (connect(daemon, (struct sockaddr *)&address, sizeof address) != 0 || write(daemon, call, sizeof call) != sizeof call) {
        perror(address.sun_path);
        return 1;
    }
    while (length == 0 || reply[length - 1] != '\0') {
        ssize_t count = length < sizeof reply ? read(daemon, reply + length, sizeof reply - length) : 0;
        if (count <= 0) {
            fprintf(stderr, "btc-priced does not respond, or not in time\n");
            return 1;
        }
        length += (size_t)count;
    }
    puts(reply);
    /* An error has this member: the price is too old, or there is none. */
    return strstr(reply, "\"error\":\"io.btcpriced") != NULL;
}
