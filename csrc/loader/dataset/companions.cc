#include "dataset/companions.h"

#include <algorithm>
#include <filesystem>
#include <stdexcept>
#include <utility>

namespace dali_l3::loader {

PathTemplate::PathTemplate(const std::string &text) {
  const auto fail = [&](const std::string &problem) {
    throw std::runtime_error("The companions' path \"" + text + "\" has " + problem +
                             "; its fields are {dir}, {stem}, {name} and {relpath}, as they are or as in "
                             "{stem%END}, {stem#START}, {stem/OLD/NEW} and {stem//OLD/NEW}");
  };
  size_t at = 0;
  while (at <= text.size()) {
    const size_t brace = text.find_first_of("{}", at);
    Token &token = tokens_.emplace_back();
    token.text = text.substr(at, brace - at);
    if (brace == std::string::npos) return;
    const size_t end = text.find('}', brace);
    if (text[brace] == '}' || end == std::string::npos) fail("an unmatched brace");
    const std::string field = text.substr(brace + 1, end - brace - 1);
    const size_t name_end = std::min(field.find_first_of("%#/"), field.size());
    token.field = field_called(field.substr(0, name_end));
    if (token.field == Field::none) fail("the unknown field {" + field + "}");
    if (name_end < field.size()) {
      std::string edit = field.substr(name_end + 1);
      if (field[name_end] == '/') {
        const bool all = edit.starts_with('/');
        edit = edit.substr(all);
        const size_t slash = edit.find('/');
        if (slash == std::string::npos) fail("no new text in {" + field + "}");
        token.edit = all ? Edit::replace_all : Edit::replace_first;
        token.new_text = edit.substr(slash + 1);
        edit = edit.substr(0, slash);
      } else {
        // Where a shell has two signs it looks for a pattern, which would be taken for text here.
        if (edit.starts_with(field[name_end])) fail("two signs in {" + field + "}, of which one is enough");
        token.edit = field[name_end] == '%' ? Edit::remove_end : Edit::remove_start;
      }
      if (edit.find_first_of("*?") != std::string::npos) fail("a pattern in {" + field + "}: give the text itself");
      if (edit.empty()) fail("no text to look for in {" + field + "}");
      token.old_text = std::move(edit);
    }
    at = end + 1;
  }
}

std::string PathTemplate::path_for(const std::string &image) const {
  const std::filesystem::path path(image);
  std::string result;
  for (const Token &token : tokens_) {
    result += token.text;
    switch (token.field) {
      case Field::dir: result += edited(path.has_parent_path() ? path.parent_path().string() : ".", token); break;
      case Field::stem: result += edited(path.stem().string(), token); break;
      case Field::name: result += edited(path.filename().string(), token); break;
      case Field::relpath: result += edited(image, token); break;
      case Field::none: break;
    }
  }
  return result;
}

PathTemplate::Field PathTemplate::field_called(const std::string &name) {
  if (name == "dir") return Field::dir;
  if (name == "stem") return Field::stem;
  if (name == "name") return Field::name;
  if (name == "relpath") return Field::relpath;
  return Field::none;
}

std::string PathTemplate::edited(std::string value, const Token &token) {
  const std::string &old_text = token.old_text;
  switch (token.edit) {
    case Edit::none: break;
    case Edit::remove_end:
      if (value.ends_with(old_text)) value.resize(value.size() - old_text.size());
      break;
    case Edit::remove_start:
      if (value.starts_with(old_text)) value.erase(0, old_text.size());
      break;
    case Edit::replace_first:
    case Edit::replace_all:
      for (size_t at = value.find(old_text); at != std::string::npos;
           at = value.find(old_text, at + token.new_text.size())) {
        value.replace(at, old_text.size(), token.new_text);
        if (token.edit == Edit::replace_first) break;
      }
  }
  return value;
}

}  // namespace dali_l3::loader
