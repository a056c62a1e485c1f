// Integer arguments of operators. DALI keeps all in 64 bits, and drops the upper ones where it is asked for an int.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "dali/pipeline/operator/op_spec.h"

namespace dali_l3 {

/** @throws std::invalid_argument where `value` is no int */
inline int ToInt(const char *argument, int64_t value) {
  const auto number = static_cast<int>(value);
  if (number != value)
    throw std::invalid_argument(std::string(argument) + ": " + std::to_string(value) + " does not fit into 32 bits");
  return number;
}

/** @throws std::invalid_argument where it is no int */
inline int IntArgument(const dali::OpSpec &spec, const char *argument) {
  return ToInt(argument, spec.GetArgument<int64_t>(argument));
}

/** @throws std::invalid_argument where one is no int */
inline std::vector<int> IntArguments(const dali::OpSpec &spec, const char *argument) {
  std::vector<int> numbers;
  for (const int64_t value : spec.GetRepeatedArgument<int64_t>(argument)) numbers.push_back(ToInt(argument, value));
  return numbers;
}

}  // namespace dali_l3
