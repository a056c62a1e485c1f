// The files that belong to an image.
#pragma once

#include <string>
#include <vector>

namespace dali_l3::loader {

/** A path with fields of the image's own path: {dir}, {stem}, {name} and {relpath}. */
class PathTemplate {
 public:
  /** @throws std::runtime_error where the text has an unknown field or an unmatched brace */
  explicit PathTemplate(const std::string &text);

  /**
   * The companion's path for an image's path, as the catalogue has it: {relpath} is that path, {name} its last part,
   * {dir} what is before that ("." if nothing), {stem} the name without its last extension.
   */
  std::string path_for(const std::string &image) const;

 private:
  enum class Field { none, dir, stem, name, relpath };
  struct Token {
    std::string text;  // before the field
    Field field;
  };
  std::vector<Token> tokens_;
};

}  // namespace dali_l3::loader
