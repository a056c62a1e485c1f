// The threads that read: results, failures, order, and their end.
#include "input/read_pool.h"

#include <atomic>
#include <chrono>
#include <latch>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "testing.h"

using namespace dali_l3::loader;

namespace {

// The message of what a future throws, or "" if it does not.
template <typename T>
std::string failure(std::future<T> &future) {
  try {
    future.get();
    return "";
  } catch (const std::runtime_error &error) {
    return error.what();
  }
}

template <typename T>
bool is_broken(std::future<T> &future) {
  try {
    future.get();
    return false;
  } catch (const std::future_error &error) {
    return error.code() == std::future_errc::broken_promise;
  }
}

}  // namespace

TEST(every_job_has_its_own_result) {
  ReadPool pool(3);
  std::vector<std::future<int>> results;
  for (int i = 0; i < 1000; i++) results.push_back(pool.submit([i] { return i; }));
  for (int i = 0; i < 1000; i++) CHECK_EQUAL(results[size_t(i)].get(), i);
}

TEST(failures_are_the_jobs_own_and_the_threads_go_on) {
  ReadPool pool(1);
  std::vector<std::future<int>> results;
  for (int i = 0; i < 100; i++) {
    results.push_back(pool.submit([i] {
      if (i % 7 == 0) throw std::runtime_error("job " + std::to_string(i));
      return i;
    }));
  }
  // Thread sanitizers do not see that threads share exceptions safely: the one thread is done with all of them after
  // this.
  pool.submit([] {}).get();
  for (int i = 0; i < 100; i++) {
    const testing::Context context("job %d", i);
    if (i % 7 == 0) {
      CHECK_EQUAL(failure(results[size_t(i)]), "job " + std::to_string(i));
    } else {
      CHECK_EQUAL(results[size_t(i)].get(), i);
    }
  }
}

TEST(results_that_only_move_and_jobs_that_only_move) {
  ReadPool pool(1);
  auto moved = pool.submit([value = std::make_unique<int>(5)]() mutable { return std::move(value); });
  CHECK_EQUAL(*moved.get(), 5);
}

TEST(one_thread_keeps_the_order) {
  std::vector<int> order, expected(200);
  std::iota(expected.begin(), expected.end(), 0);
  ReadPool pool(1);
  std::vector<std::future<void>> done;
  for (int i : expected) done.push_back(pool.submit([&order, i] { order.push_back(i); }));
  for (auto &job : done) job.get();
  CHECK(order == expected);
}

TEST(as_many_jobs_at_once_as_threads) {
  constexpr int kThreads = 5;
  std::latch all_running(kThreads);
  ReadPool pool(kThreads);
  std::vector<std::future<void>> done;
  for (int i = 0; i < kThreads; i++) done.push_back(pool.submit([&] { all_running.arrive_and_wait(); }));
  for (auto &job : done) job.get();
}

TEST(jobs_may_submit_jobs) {
  ReadPool pool(1);
  auto inner = pool.submit([&] { return pool.submit([] { return 3; }); }).get();
  CHECK_EQUAL(inner.get(), 3);
}

TEST(many_threads_submit) {
  std::atomic<int> sum{0};
  {
    ReadPool pool(2);
    std::vector<std::jthread> threads;
    for (int thread = 0; thread < 4; thread++) {
      threads.emplace_back([&] {
        std::vector<std::future<void>> done;
        for (int i = 0; i < 500; i++) done.push_back(pool.submit([&] { sum++; }));
        for (auto &job : done) job.get();
      });
    }
  }
  CHECK_EQUAL(sum, 2000);
}

TEST(the_end_does_not_wait_for_what_has_not_started) {
  const auto owned = std::make_shared<int>();
  std::vector<std::future<void>> jobs;
  const auto start = std::chrono::steady_clock::now();
  {
    std::latch running(2);
    ReadPool pool(2);
    for (int i = 0; i < 4000; i++) {
      jobs.push_back(pool.submit([owned, &running, i] {
        if (i < 2) running.count_down();
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
      }));
    }
    running.wait();
  }
  CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(20));  // all of them take 40
  jobs[0].get();                                                               // was running
  CHECK(is_broken(jobs.back()));
  jobs.clear();
  CHECK_EQUAL(owned.use_count(), 1);
}

TEST(the_end_stops_all_threads_at_once) {
  constexpr int kThreads = 8;
  std::atomic<bool> finish{false};
  std::atomic<int> run{0};
  std::jthread finisher;
  std::latch running(kThreads - 1);
  {
    ReadPool pool(kThreads);
    for (int i = 0; i < kThreads - 1; i++) {
      pool.submit([&] {
        running.count_down();
        while (!finish) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      });
    }
    running.wait();
    for (int i = 0; i < 200; i++) {
      pool.submit([&] {
        run++;
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      });
    }
    finisher = std::jthread([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(800));
      finish = true;
    });
  }
  CHECK(run < 200);  // while another thread was waited for, the free one would have run all
}

TEST(a_pool_that_never_worked) { ReadPool pool(8); }

TEST(numbers_of_threads) {
  for (int threads : {0, -1, ReadPool::kMaxThreads + 1}) {
    bool refused = false;
    try {
      ReadPool pool(threads);
    } catch (const std::invalid_argument &error) {
      refused = std::string(error.what()).find(std::to_string(threads)) != std::string::npos;
    }
    CHECK(refused);
  }
}
