#define _GNU_SOURCE
#include "CMemory.h"

#include <link.h>
#include <malloc.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

static int drop(struct dl_phdr_info *object, size_t size, void *data)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    (void)size, (void)data;
    for (int i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &object->dlpi_phdr[i];
        /* A segment that can be written holds what differs from the file, and so does what was relocated in it. */
        if (segment->p_type != PT_LOAD || (segment->p_flags & PF_W))
            continue;
        uintptr_t begin = object->dlpi_addr + segment->p_vaddr, end = begin + segment->p_memsz;
        begin = (begin + page - 1) / page * page;
        end = end / page * page;
        if (begin < end)
            madvise((void *)begin, end - begin, MADV_DONTNEED);
    }
    return 0;
}

void cmemory_drop_clean_pages(void)
{
    dl_iterate_phdr(drop, NULL);
}

void cmemory_return_free_pages(void)
{
    malloc_trim(0);
}

void cmemory_return_large_blocks(void)
{
    mallopt(M_MMAP_THRESHOLD, 128 * 1024);
}
