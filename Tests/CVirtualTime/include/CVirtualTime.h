#pragma once

/// The Swift runtime's hook for every job that would go to the global executor (swift/Runtime/Concurrency.h). A variable of a C
/// type that Swift can't import as such: here is its address.
extern void *swift_task_enqueueGlobal_hook;

static inline void **enqueue_global_hook(void) {
    return &swift_task_enqueueGlobal_hook;
}
