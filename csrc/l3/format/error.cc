#include "format/error.h"

#include <cstdarg>
#include <cstdio>

namespace l3 {

l3_status fail(l3_error *error, l3_status status, const char *format, ...) {
  if (error) {
    error->status = status;
    va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(error->message, sizeof error->message, format, arguments);
    va_end(arguments);
  }
  return status;
}

}  // namespace l3

extern "C" const char *l3_status_text(l3_status status) {
  switch (status) {
    case L3_OK: return "ok";
    case L3_ERROR_ARGUMENT: return "argument";
    case L3_ERROR_SIGNATURE: return "signature";
    case L3_ERROR_UNSUPPORTED: return "unsupported";
    case L3_ERROR_LIMIT: return "limit";
    case L3_ERROR_TRUNCATED: return "truncated";
    case L3_ERROR_CORRUPT: return "corrupt";
    case L3_ERROR_CHECKSUM: return "checksum";
    case L3_ERROR_CAPACITY: return "capacity";
    case L3_ERROR_DEVICE: return "device";
  }
  return "unknown";
}
