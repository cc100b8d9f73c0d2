//! Windows and credit: F-03, F-04, F-05 (AMQP 1.0 §2.5.6, §2.6.7).
