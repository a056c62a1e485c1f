// Messages of errors as text.
#pragma once

#include <stdexcept>

#include "loader/dataset/printable.h"

namespace dali_l3 {

// Calls `call`. DALI makes Python errors of the messages of its errors, which only text can be.
template <typename Call>
auto WithPrintableErrors(Call call) {
  try {
    return call();
  } catch (const std::invalid_argument &error) {
    throw std::invalid_argument(loader::printable(error.what()));
  } catch (const std::runtime_error &error) {
    throw std::runtime_error(loader::printable(error.what()));
  }
}

}  // namespace dali_l3
