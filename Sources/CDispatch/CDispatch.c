#include "CDispatch.h"

extern void __real_dispatch_source_set_timer(void *source, unsigned long long start, unsigned long long interval, unsigned long long leeway)
    __attribute__((weak));

void __wrap_dispatch_source_set_timer(void *source, unsigned long long start, unsigned long long interval, unsigned long long leeway)
{
    static const unsigned long long second = 1000000000;

    if (interval == second)
        interval = 5 * second;
    /* Where nothing is wrapped nobody comes here. */
    if (__real_dispatch_source_set_timer)
        __real_dispatch_source_set_timer(source, start, interval, leeway);
}
