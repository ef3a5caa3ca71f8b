#include "engine/services.hpp"

#include <string>

namespace nexar::engine {

/// Gives an operation that ends after an abort the error of the abort.
void Services::end_with_abort(Operation& operation) const {
    if (!aborted_ || (operation.error && operation.error->abort_code())) return;
    operation.error = aborted_->within(
        {.operation = operation.error ? operation.error->operation() : std::string{}});
}

}  // namespace nexar::engine
