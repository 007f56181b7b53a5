#include "words.h"

const char* word_for(long number) {
  return number < 0 ? "below zero" : number < 100 ? "small" : "large";
}
