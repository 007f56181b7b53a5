// zstd as a static archive with an assembly file: compresses and restores, with and without a dictionary.
//# flags: -I%sources(zstd-sys)/zstd/lib -DXXH_NAMESPACE=ZSTD_ -w
//# sources: %sources(zstd-sys)/zstd/lib/common/*.c
//# sources: %sources(zstd-sys)/zstd/lib/compress/*.c
//# sources: %sources(zstd-sys)/zstd/lib/decompress/*.c
//# sources: %sources(zstd-sys)/zstd/lib/decompress/*.S
//# sources: %sources(zstd-sys)/zstd/lib/dictBuilder/*.c
//# step: %ar rcs libzstd.a %glob(objects/*.o)
//# link: main.o libzstd.a -pthread
//--- main.c
#include "zdict.h"
#include "zstd.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SIZE = 1 << 18, SAMPLES = 256 };
static unsigned char text[SIZE], packed[SIZE * 2], restored[SIZE], dictionary[1 << 14];

int main(void) {
  unsigned state = 1;
  for (int i = 0; i < SIZE; i++) {
    state = state * 1103515245u + 12345u;
    text[i] = "etaoin shrdlu"[(state >> 16) % 13];
    if (i >= 64 && (state >> 20) % 4)
      text[i] = text[i - 64];
  }
  for (int level = 1; level <= 19; level += 6) {
    size_t size = ZSTD_compress(packed, sizeof packed, text, SIZE, level);
    size_t back = ZSTD_decompress(restored, SIZE, packed, size);
    printf("level %d: %zu bytes, %s\n", level, size, back == SIZE && !memcmp(text, restored, SIZE) ? "restored" : "broken");
  }
  size_t sizes[SAMPLES];
  for (int i = 0; i < SAMPLES; i++)
    sizes[i] = SIZE / SAMPLES;
  size_t length = ZDICT_trainFromBuffer(dictionary, sizeof dictionary, text, sizes, SAMPLES);
  ZSTD_CCtx *context = ZSTD_createCCtx();
  size_t size = ZSTD_compress_usingDict(context, packed, sizeof packed, text, 1024, dictionary, length, 3);
  printf("dictionary of %zu bytes: 1024 -> %zu\n", length, size);
  ZSTD_freeCCtx(context);
  return ZSTD_isError(size);
}
