#include "checksum/checksum.h"
#include "rot13/rot13.h"
#include "text/text.h"

// What a shared library offers is what it refers to: members and objects are loaded for these addresses.
extern "C" const void *const all_of_it[] = {
    reinterpret_cast<const void *>(&adler),     reinterpret_cast<const void *>(&fletcher),
    reinterpret_cast<const void *>(&rot13),     reinterpret_cast<const void *>(&split),
    reinterpret_cast<const void *>(&longest),
};
