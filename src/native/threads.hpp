// Tasks in threads that live for one call: none is left for a forked child to wait for.
#pragma once

#include <atomic>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>

#include "vector.hpp"

namespace pimeter {

constexpr std::size_t MOST_KEPT = std::size_t(32) << 20;  // bytes

// Call work(task, worker) for all tasks; which thread takes which must not matter. Each thread has a Worker of its own,
// which keeps its room for the next call unless that is much: fresh memory costs more than many a quantile.
template <class Worker, class Work>
void in_threads(Index n_threads, Index n_tasks, Work work) {
    std::atomic<Index> next{0};
    std::exception_ptr failure;
    std::mutex lock;
    auto run = [&] {
        try {
            thread_local Worker worker;
            try {
                for (Index task; (task = next++) < n_tasks;) work(task, worker);
            } catch (...) {  // it may have stopped halfway
                worker = Worker();
                throw;
            }
            if constexpr (requires { worker.room(); })
                if (worker.room() > MOST_KEPT) worker = Worker();
        } catch (...) {
            std::lock_guard guard(lock);
            failure = std::current_exception();
            next = n_tasks;
        }
    };
    std::vector<std::thread> others;
    others.reserve(std::max<Index>(std::min(n_threads, n_tasks) - 1, 0));
    try {
        for (Index i = 1; i < std::min(n_threads, n_tasks); ++i) others.emplace_back(run);
    } catch (...) {  // no more threads to be had: those there are do the work
    }
    run();
    for (std::thread& other : others) other.join();
    if (failure) std::rethrow_exception(failure);
}

}  // namespace pimeter
