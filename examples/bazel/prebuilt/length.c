int prebuilt_length(const char *word) {
  int length = 0;
  while (word[length]) {
    length++;
  }
  return length;
}
