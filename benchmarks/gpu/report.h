// What the program prints: JSON objects, one a line.
#pragma once

#include <iomanip>
#include <iostream>
#include <sstream>
#include <string>

namespace benchmark {

// A line, printed when it goes out of scope.
class Line {
 public:
  explicit Line(const char *what) { text_ << std::setprecision(9) << "{\"what\": \"" << what << '"'; }
  ~Line() { std::cout << text_.str() << "}" << std::endl; }
  Line(const Line &) = delete;
  Line &operator=(const Line &) = delete;

  Line &add(const char *key, const std::string &value) {
    text_ << ", \"" << key << "\": \"" << value << '"';
    return *this;
  }
  Line &add(const char *key, double value) {
    text_ << ", \"" << key << "\": " << value;
    return *this;
  }

 private:
  std::ostringstream text_;
};

}  // namespace benchmark
