#pragma once

int async_run(int work);
int time_now(void);
int string_length(const char *text);
int entry(int value);
int disk_read(int block);
int queue_push(int block);
