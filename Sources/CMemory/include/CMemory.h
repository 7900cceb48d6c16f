/* What Swift cannot import: dl_iterate_phdr(3), which glibc shows with _GNU_SOURCE only, and mallopt(3) and malloc_trim(3). */
#ifndef CMEMORY_H
#define CMEMORY_H

/* Gives the pages of this process's code and constants back, those of its libraries too: whatever is needed again is mapped again
   from the page cache, a page fault each 64 KiB. What was written to, as relocations are, is left alone. */
void cmemory_drop_clean_pages(void);

/* Gives back the pages of the heap that hold nothing any more, of every thread's (malloc_trim(3)). */
void cmemory_return_free_pages(void);

/* Has what is large, from 128 KiB on, always be a mapping of its own, which is gone once it is freed (M_MMAP_THRESHOLD, mallopt(3)).
   By default the first large one that is freed raises that bound, and the tables that grew are kept beside their successors. */
void cmemory_return_large_blocks(void);

#endif
