#pragma once

#ifdef __cplusplus
extern "C"
#endif
char rot13(char c);
