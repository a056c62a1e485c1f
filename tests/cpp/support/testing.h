// A small test framework. TEST registers a function, CHECK and CHECK_EQUAL end it with a message where they fail, and a
// Context in scope adds to the message.
#pragma once

#include <exception>
#include <sstream>
#include <stdexcept>
#include <string>

namespace testing {

struct Registration {
  Registration(const char *name, void (*test)());
};

// What the running test is about at the moment, for the message of a failure.
class Context {
 public:
  [[gnu::format(printf, 2, 3)]] explicit Context(const char *format, ...);
  ~Context();
  Context(const Context &) = delete;
  Context &operator=(const Context &) = delete;
};

struct Failure : std::exception {};

// Runs the tests whose names contain one of the arguments, or all; returns what main is to return.
int run_tests(int argc, char **argv);

// Reports the failure of the running test and throws Failure.
[[noreturn]] void fail(const char *file, int line, const std::string &message);

template <typename A, typename B>
void check_equal(const A &actual, const B &expected, const char *text, const char *file, int line) {
  if (actual == expected) return;
  std::ostringstream message;
  message << text << ": " << actual << " is not " << expected;
  fail(file, line, message.str());
}

// The message of the error that a call ends with; empty if there is none.
template <typename Call>
std::string error_of(Call call) {
  try {
    call();
  } catch (const std::runtime_error &error) {
    return error.what();
  } catch (const std::invalid_argument &error) {
    return error.what();
  }
  return "";
}

}  // namespace testing

#define TEST(name)                                                     \
  static void name();                                                  \
  static const testing::Registration name##_registration(#name, name); \
  static void name()

#define CHECK(condition) \
  if (!(condition)) testing::fail(__FILE__, __LINE__, #condition)

#define CHECK_EQUAL(actual, expected) testing::check_equal(actual, expected, #actual, __FILE__, __LINE__)
