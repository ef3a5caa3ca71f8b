# cmake -DCOMPILE=<compiler and flags> -DSOURCE=secret_logged.cpp -P secret_logged.cmake
#
# Checks that code that logs a Secret does not compile, and that the Secret is the reason.

execute_process(COMMAND ${COMPILE} ${SOURCE} RESULT_VARIABLE failed ERROR_VARIABLE errors)
if(failed)
  message(FATAL_ERROR "the harmless variant does not compile:\n${errors}")
endif()

execute_process(COMMAND ${COMPILE} -DNEXAR_LOG_THE_SECRET ${SOURCE} RESULT_VARIABLE failed
                ERROR_VARIABLE errors)
if(NOT failed)
  message(FATAL_ERROR "a program that logs a Secret compiles")
endif()
if(NOT errors MATCHES
   "[Cc]annot format an argument|type_is_unformattable_for|formattable|fallback_formatter<nexar::Secret>"
   OR NOT errors MATCHES "nexar::Secret")
  message(FATAL_ERROR "logging a Secret fails for another reason:\n${errors}")
endif()
