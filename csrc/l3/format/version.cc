#include "l3/l3.h"

#define TEXT_OF(number) #number
#define VERSION_TEXT(major, minor, patch) TEXT_OF(major) "." TEXT_OF(minor) "." TEXT_OF(patch)

const char *l3_version() { return VERSION_TEXT(L3_VERSION_MAJOR, L3_VERSION_MINOR, L3_VERSION_PATCH); }
