// Part @PART@ of @PARTS@. It imports small functions from the two parts after it.
unsigned small@NEXT@(unsigned), small@AFTER@(unsigned);

unsigned small@PART@(unsigned x) { return x * @FACTOR@ + 1; }

template <unsigned N> static unsigned mix(unsigned x) {
  unsigned table[32];
  for (unsigned i = 0; i < 32; ++i) table[i] = small@NEXT@(x + i) ^ small@AFTER@(x * N);
  for (unsigned i = 0; i < 32; ++i) x = x * N + table[(x ^ i) % 32];
  return x + mix<N - 1>(x ^ N);
}
template <> unsigned mix<0>(unsigned x) { return x; }

unsigned part@PART@(unsigned x) { return mix<24>(x); }
