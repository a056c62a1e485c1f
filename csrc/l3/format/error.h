// Filling in an l3_error.
#pragma once

#include "l3/l3.h"

namespace l3 {

// Writes status and the formatted message to `error` (which may be null) and returns the status, so that callers can
// `return fail(...)`.
[[gnu::format(printf, 3, 4)]] l3_status fail(l3_error *error, l3_status status, const char *format, ...);

}  // namespace l3
