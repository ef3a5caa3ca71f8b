// Calls, as the engine's operations.

#include "engine/engine.hpp"

namespace nexar::engine {

void Engine::start(Context& context, CallOperation& call) {
    if (admit(context, call)) calls_.start(context, call);
}

void Engine::cancel(CallOperation& call) {
    calls_.cancel(call);
}

}  // namespace nexar::engine
