/* What Swift cannot import: dl_iterate_phdr(3), which glibc shows with _GNU_SOURCE only. */
#ifndef CMEMORY_H
#define CMEMORY_H

/* Gives the pages of this process's code and constants back, those of its libraries too: whatever is needed again is mapped again
   from the page cache, a page fault each 64 KiB. What was written to, as relocations are, is left alone. */
void cmemory_drop_clean_pages(void);

#endif
