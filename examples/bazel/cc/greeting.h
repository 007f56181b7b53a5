#pragma once

const char *greeting();
