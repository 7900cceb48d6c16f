/* What the static libdispatch does without being asked. */
#ifndef CDISPATCH_H
#define CDISPATCH_H

/* Takes the place of dispatch_source_set_timer(3) in a release build (--wrap in Package.swift), to which it goes on.

   From its first task on libdispatch looks after its pool of threads once a second, for as long as the process lives, and starts more of
   them where those it has are blocked (_dispatch_workq_monitor_pools in its workqueue.c). Nothing of ours blocks one of them for long;
   for a name that NIO looks up a look in five seconds will do. It is the only timer that repeats every second. */
void __wrap_dispatch_source_set_timer(void *source, unsigned long long start, unsigned long long interval, unsigned long long leeway);

#endif
