// libFuzzer as a library: the toolchain has its archive and no header for it (llvm.org/docs/LibFuzzer.html, Using libFuzzer as a
// library).
#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerRunDriver(int *argc, char ***argv, int (*run)(const uint8_t *data, size_t size));

// libFuzzer's own change of an input, for a mutator of ours.
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t longest);
