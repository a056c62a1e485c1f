#include "testing.h"

#include <algorithm>
#include <chrono>
#include <cstdarg>
#include <cstdio>
#include <vector>

namespace testing {
namespace {

struct Test {
  const char *name;
  void (*run)();
};

std::vector<Test> &tests() {
  static std::vector<Test> tests;
  return tests;
}

std::vector<std::string> contexts;  // outermost first

bool is_chosen(const Test &test, int argc, char **argv) {
  const auto is_part = [&](const char *part) { return std::string(test.name).find(part) != std::string::npos; };
  return argc == 1 || std::any_of(argv + 1, argv + argc, is_part);
}

bool passes(const Test &test) {
  try {
    test.run();
    return true;
  } catch (const Failure &) {
  } catch (const std::exception &error) {
    std::printf("%s: %s\n", test.name, error.what());
  }
  return false;
}

}  // namespace

Registration::Registration(const char *name, void (*test)()) { tests().push_back({name, test}); }

Context::Context(const char *format, ...) {
  char text[256];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  contexts.emplace_back(text);
}

Context::~Context() { contexts.pop_back(); }

void fail(const char *file, int line, const std::string &message) {
  std::printf("%s:%d: %s\n", file, line, message.c_str());
  for (const std::string &context : contexts) std::printf("  with %s\n", context.c_str());
  throw Failure();
}

int run_tests(int argc, char **argv) {
  int run = 0, failed = 0;
  for (const auto &test : tests()) {
    if (!is_chosen(test, argc, argv)) continue;
    const auto start = std::chrono::steady_clock::now();
    const bool passed = passes(test);
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    std::printf("%s %s (%.2f s)\n", passed ? "ok    " : "FAILED", test.name, seconds.count());
    std::fflush(stdout);
    run++;
    failed += !passed;
  }
  std::printf("%d of %d tests failed\n", failed, run);
  return failed || !run;
}

}  // namespace testing
