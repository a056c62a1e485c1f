#include "workers.h"

namespace benchmark {

Workers::Workers(unsigned threads) {
  for (unsigned i = 1; i < threads; i++) threads_.emplace_back(&Workers::work, this);
}

Workers::~Workers() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  started_.notify_all();
  for (std::thread &thread : threads_) thread.join();
}

void Workers::run(void *context, size_t count, void (*body)(void *, size_t), void *argument) {
  Workers &workers = *static_cast<Workers *>(context);
  {
    std::lock_guard lock(workers.mutex_);
    workers.loop_ = {count, body, argument};
    workers.next_ = 0;
    workers.round_++;
    workers.busy_ = unsigned(workers.threads_.size());
  }
  workers.started_.notify_all();
  workers.take_turns();
  std::unique_lock lock(workers.mutex_);
  workers.finished_.wait(lock, [&] { return workers.busy_ == 0; });
}

void Workers::work() {
  for (unsigned done = 0;;) {
    std::unique_lock lock(mutex_);
    started_.wait(lock, [&] { return stopping_ || round_ != done; });
    if (stopping_) return;
    done = round_;
    lock.unlock();
    take_turns();
    lock.lock();
    if (--busy_ == 0) finished_.notify_one();
  }
}

void Workers::take_turns() {
  for (size_t i; (i = next_++) < loop_.count;) loop_.body(loop_.argument, i);
}

}  // namespace benchmark
