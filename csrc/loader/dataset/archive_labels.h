// Labels in text files and in JSON.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace dali_l3::loader {

/**
 * The numbers of a label.
 *
 * @param text of the file: numbers between white space or commas; or, with a field, a JSON object
 * @param field the key of a number, or of an array of numbers, in that object; in objects in it, keys with dots between
 * @throws std::runtime_error that says what is wrong with the text
 */
std::vector<double> label_numbers(std::string_view text, const std::optional<std::string> &field);

}  // namespace dali_l3::loader
