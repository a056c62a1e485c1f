#include "dataset/companions.h"

#include <filesystem>
#include <stdexcept>

namespace dali_l3::loader {

PathTemplate::PathTemplate(const std::string &text) {
  const auto fail = [&](const std::string &problem) {
    throw std::runtime_error("The companions' path \"" + text + "\" has " + problem +
                             "; its fields are {dir}, {stem}, {name} and {relpath}");
  };
  size_t at = 0;
  while (at <= text.size()) {
    const size_t brace = text.find_first_of("{}", at);
    Token &token = tokens_.emplace_back(text.substr(at, brace - at), Field::none);
    if (brace == std::string::npos) return;
    const size_t end = text.find('}', brace);
    if (text[brace] == '}' || end == std::string::npos) fail("an unmatched brace");
    const std::string field = text.substr(brace + 1, end - brace - 1);
    if (field == "dir")
      token.field = Field::dir;
    else if (field == "stem")
      token.field = Field::stem;
    else if (field == "name")
      token.field = Field::name;
    else if (field == "relpath")
      token.field = Field::relpath;
    else
      fail("the unknown field {" + field + "}");
    at = end + 1;
  }
}

std::string PathTemplate::path_for(const std::string &image) const {
  const std::filesystem::path path(image);
  std::string result;
  for (const Token &token : tokens_) {
    result += token.text;
    switch (token.field) {
      case Field::dir: result += path.has_parent_path() ? path.parent_path().string() : "."; break;
      case Field::stem: result += path.stem().string(); break;
      case Field::name: result += path.filename().string(); break;
      case Field::relpath: result += image; break;
      case Field::none: break;
    }
  }
  return result;
}

}  // namespace dali_l3::loader
