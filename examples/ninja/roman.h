/* Roman numerals. */
#pragma once

/* Writes a number from 1 to 3999; 16 bytes are enough. */
void roman(int number, char *text);
/* The numeral of place n (1000, 900, 500, ...), and its value in *value. */
const char *digit(int n, int *value);
