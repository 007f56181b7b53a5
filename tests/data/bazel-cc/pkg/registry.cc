#include "pkg/registry.h"
static int registered;
int add() { return ++registered; }
int count() { return registered; }
