#pragma once

extern "C" int plugin_score(int length);
