// The files that belong to an image.
#pragma once

#include <string>
#include <vector>

namespace dali_l3::loader {

/**
 * A path with fields of the image's own path: {dir}, {stem}, {name} and {relpath}.
 *
 * A field may be edited, as in a shell: {stem%END} is the stem without END at its end, {stem#START} without START at
 * its start, {stem/OLD/NEW} has NEW in the place of the first OLD, {stem//OLD/NEW} in the place of every OLD. What is
 * not there is not edited. All are plain text, not patterns.
 */
class PathTemplate {
 public:
  /** @throws std::runtime_error where the text has an unknown field, an edit without a text or an unmatched brace */
  explicit PathTemplate(const std::string &text);

  /**
   * The companion's path for an image's path, as the catalogue has it: {relpath} is that path, {name} its last part,
   * {dir} what is before that ("." if nothing), {stem} the name without its last extension.
   */
  std::string path_for(const std::string &image) const;

 private:
  enum class Field { none, dir, stem, name, relpath };
  enum class Edit { none, remove_end, remove_start, replace_first, replace_all };
  struct Token {
    std::string text;  // before the field
    Field field = Field::none;
    Edit edit = Edit::none;
    std::string old_text, new_text;  // of the edit
  };

  static Field field_called(const std::string &name);
  static std::string edited(std::string value, const Token &token);

  std::vector<Token> tokens_;
};

}  // namespace dali_l3::loader
