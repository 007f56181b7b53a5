#ifdef __cplusplus
extern "C"
#endif
// What a number is called.
const char* word_for(long number);
