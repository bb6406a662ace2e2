// Calls of DuckDB's C API that allocate within its memory limit, and so throw where it is reached: the API is C, its
// implementation lets C++ exceptions through, and a foreign exception that meets Rust's own unwinding ends the process.
// Here it ends at the call, and its text is all that goes on.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>

namespace {

template <typename Call>
bool completed(Call call, char *text, size_t room) noexcept {
    const char *what = "DuckDB threw something that is no std::exception";
    try {
        call();
        return true;
    } catch (const std::exception &error) {
        // The text belongs to the exception, which ends with this block.
        std::strncpy(text, error.what(), room - 1);
    } catch (...) {
        std::strncpy(text, what, room - 1);
    }
    text[room - 1] = '\0';
    return false;
}

} // namespace

extern "C" {

// Each returns whether the call came back; if not, `text`, of `room` > 0 bytes, says why.

bool engramsql_host_reserve(int (*function)(void *, uint64_t), void *vector, uint64_t count, int *state, char *text,
                            size_t room) {
    return completed([&] { *state = function(vector, count); }, text, room);
}

bool engramsql_host_assign(void (*function)(void *, uint64_t, const char *, uint64_t), void *vector, uint64_t row,
                           const char *bytes, uint64_t length, char *text, size_t room) {
    return completed([&] { function(vector, row, bytes, length); }, text, room);
}

bool engramsql_host_validity(void (*function)(void *), void *vector, char *text, size_t room) {
    return completed([&] { function(vector); }, text, room);
}

}
