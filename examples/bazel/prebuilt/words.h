#pragma once

#ifdef __cplusplus
extern "C" {
#endif
int prebuilt_length(const char *word);
int generated_vowels(const char *word);
#ifdef __cplusplus
}
#endif
