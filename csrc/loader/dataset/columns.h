// Columns of values, which are in memory or in a file that is mapped.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string_view>
#include <vector>

namespace dali_l3::loader {

/** Values that are this object's own, or somebody else's and constant. */
template <typename T>
class Array {
 public:
  Array() = default;
  /** @param others to be kept by somebody for as long as this object or a copy of it is used */
  explicit Array(std::span<const T> others) : others_(others) {}

  std::span<const T> values() const { return others_.data() ? others_ : std::span<const T>(own_); }
  std::vector<T> &own() { return own_; }
  size_t held_bytes() const { return own_.capacity() * sizeof(T); }

 private:
  std::vector<T> own_;
  std::span<const T> others_;
};

/** A value for each row. Those behind the last one that was set are `usual`: a column of nothing else takes no memory.
 */
template <typename T>
class Column {
 public:
  explicit Column(T usual = {}) : usual_(usual) {}
  explicit Column(std::span<const T> others) : array_(others), usual_() {}

  T operator[](size_t row) const {
    const std::span<const T> values = array_.values();
    return row < values.size() ? values[row] : usual_;
  }

  /** Different rows may be set by different threads if fill() has been called. */
  void set(size_t row, T value) {
    std::vector<T> &own = array_.own();
    if (row >= own.size()) {
      if (value == usual_) return;
      own.resize(row + 1, usual_);
    }
    own[row] = value;
  }
  void fill(size_t rows) { array_.own().resize(rows, usual_); }

  std::span<const T> values() const { return array_.values(); }

  void shrink() { array_.own().shrink_to_fit(); }
  size_t held_bytes() const { return array_.held_bytes(); }

 private:
  Array<T> array_;
  T usual_;
};

/** Texts, one behind the other. */
class Strings {
 public:
  Strings() = default;
  /** @param ends where each ends among the bytes: any numbers */
  Strings(std::span<const uint64_t> ends, std::span<const char> bytes) : ends_(ends), bytes_(bytes) {}

  size_t size() const { return ends_.values().size(); }

  /** @throws std::runtime_error if it is not within the bytes */
  std::string_view operator[](size_t row) const {
    const std::span<const uint64_t> ends = ends_.values();
    const std::span<const char> bytes = bytes_.values();
    if (row >= ends.size()) throw std::runtime_error("a name is missing");
    const uint64_t begin = row == 0 ? 0 : ends[row - 1], end = ends[row];
    if (begin > end || end > bytes.size()) throw std::runtime_error("a name lies outside of its section");
    return {bytes.data() + begin, end - begin};
  }

  void push_back(std::string_view text) {
    bytes_.own().insert(bytes_.own().end(), text.begin(), text.end());
    ends_.own().push_back(bytes_.own().size());
  }

  void shrink() {
    bytes_.own().shrink_to_fit();
    ends_.own().shrink_to_fit();
  }
  size_t held_bytes() const { return bytes_.held_bytes() + ends_.held_bytes(); }

  /** @name As they are stored @{ */
  std::span<const uint64_t> ends() const { return ends_.values(); }
  std::span<const char> bytes() const { return bytes_.values(); }
  /** @} */

 private:
  Array<uint64_t> ends_;
  Array<char> bytes_;
};

}  // namespace dali_l3::loader
