// Counts what registers itself.
#pragma once
int add();
int count();
