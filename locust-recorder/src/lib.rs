//! Records the requests of one Locust process, inside Locust's Python (module `weir_locust_recorder`).
//!
//! This code runs for each request, in the process that makes the load: a recorder in Python takes three times the CPU
//! time (decision 0023). The plugin `weir.generators.scripted.locust_plugin` sends the records to weir.
//!
//! Locust's users are greenlets. While one of them waits, others run on the same stack, also inside the calls here.
//! So nothing here holds the lock, or a reference into its own stack, during a call of Python.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyCFunction, PyDict, PyTuple, PyType};
use rustix::time::{ClockId, clock_gettime};

/// gevent's timers end on whole milliseconds: a pause of 13.3 ms lasts 14.2 ms. This delay is not schedule lag.
const TIMER_NS: i64 = 1_000_000;

/// Returns the time of CLOCK_MONOTONIC, as Python's `time.monotonic_ns` does.
fn monotonic_ns() -> i64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec * 1_000_000_000 + now.tv_nsec
}

/// What the users record and the plugin's thread takes.
#[derive(Default)]
struct Records {
    /// The five fields of `lines.REQUEST`.
    requests: Vec<[[u8; 8]; 5]>,
    /// The start times of requests.
    begun: Vec<[u8; 8]>,
    new_outcomes: Vec<Py<PyTuple>>,
    in_flight: InFlight,
    unanswered: u64,
    /// Schedule lag of greenlets that have not recorded a request since, by address. The reference keeps the address.
    lags: HashMap<usize, (Py<PyAny>, i64)>,
}

/// The start times of the requests in flight, each at a place of its own.
#[derive(Default)]
struct InFlight {
    /// `NO_REQUEST` at a free place.
    starts_ns: Vec<i64>,
    free: Vec<usize>,
}

const NO_REQUEST: i64 = i64::MAX;

impl InFlight {
    /// Returns the place of the request.
    fn begin(&mut self, start_ns: i64) -> usize {
        let place = self.free.pop().unwrap_or(self.starts_ns.len());
        if place == self.starts_ns.len() {
            self.starts_ns.push(start_ns);
        } else {
            self.starts_ns[place] = start_ns;
        }
        place
    }

    fn end(&mut self, place: usize) {
        self.starts_ns[place] = NO_REQUEST;
        self.free.push(place);
    }
}

/// Records requests from the calls of Locust's event `request`, of its HTTP clients and of its users' pauses.
///
/// `responses` are the response classes of Locust's HTTP clients. `failure_kind` gets the response or None if it has
/// another class, the status and the exception of a failed request, and returns the kind of failure.
#[pyclass(frozen)]
struct Recorder {
    responses: Py<PyTuple>,
    failure_kind: Py<PyAny>,
    get_current: Py<PyAny>,
    greenlet_exit: Py<PyAny>,
    method: Py<PyAny>,
    /// A dict from each outcome to its index.
    outcomes: Py<PyDict>,
    is_recording: AtomicBool,
    records: Mutex<Records>,
}

type Taken<'py> = (Bound<'py, PyBytes>, Bound<'py, PyBytes>, Vec<Py<PyTuple>>);

#[pymethods]
impl Recorder {
    #[new]
    fn new(py: Python<'_>, responses: Py<PyTuple>, failure_kind: Py<PyAny>) -> PyResult<Self> {
        let gevent = py.import("gevent")?;
        Ok(Self {
            responses,
            failure_kind,
            get_current: gevent.getattr("getcurrent")?.unbind(),
            greenlet_exit: gevent.getattr("GreenletExit")?.unbind(),
            method: py.import("types")?.getattr("MethodType")?.unbind(),
            outcomes: PyDict::new(py).unbind(),
            is_recording: AtomicBool::new(false),
            records: Mutex::default(),
        })
    }

    /// Whether requests are recorded.
    #[getter]
    fn is_recording(&self) -> bool {
        self.is_recording.load(Ordering::Relaxed)
    }

    #[setter]
    fn set_is_recording(&self, is_recording: bool) {
        self.is_recording.store(is_recording, Ordering::Relaxed);
    }

    /// Total number of requests that Locust stopped before the response.
    #[getter]
    fn unanswered(&self) -> u64 {
        self.lock().unanswered
    }

    /// Returns a function that records a request at its end and then calls `fire`, the method of Locust's event `request`.
    // A listener would cost more: Locust copies the nine arguments for each listener. A method of this class, too: PyO3
    // compares the names of the arguments as strings.
    fn record_before<'py>(slf: &Bound<'py, Self>, fire: Py<PyAny>) -> PyResult<Bound<'py, PyCFunction>> {
        let recorder = slf.clone().unbind();
        PyCFunction::new_closure(
            slf.py(),
            None,
            None,
            move |arguments: &Bound<'_, PyTuple>, fields: Option<&Bound<'_, PyDict>>| {
                let py = arguments.py();
                if let Some(fields) = fields
                    && let Err(error) = recorder.get().record(fields)
                {
                    error.write_unraisable(py, None);
                }
                fire.call(py, arguments, fields)
            },
        )
    }

    /// Wraps the method `request` of a client class to record the start and the end of each request.
    fn watch(slf: &Bound<'_, Self>, client: &Bound<'_, PyAny>) -> PyResult<()> {
        let request = client.getattr("request")?.unbind();
        client.setattr("request", WatchedRequest { request, recorder: slf.clone().unbind() })
    }

    /// Replaces `_sleep`, the pause of users, to record schedule lag. Returns False, and replaces nothing, if `_sleep`
    /// does not only call `gevent.sleep`.
    // A wrapper would cost more: Python would bind it to the user, and it would call one more function of Python.
    fn time_pauses(slf: &Bound<'_, Self>, task_set: &Bound<'_, PyAny>) -> PyResult<bool> {
        let py = slf.py();
        let names = task_set.getattr("_sleep").and_then(|sleep| sleep.getattr("__code__")?.getattr("co_names"));
        if !names.is_ok_and(|names| names.eq(("gevent", "sleep")).unwrap_or(false)) {
            return Ok(false);
        }
        let recorder = slf.clone().unbind();
        let sleep = py.import("gevent")?.getattr("sleep")?.unbind();
        let pause = move |arguments: &Bound<'_, PyTuple>, _: Option<&Bound<'_, PyDict>>| {
            let seconds: f64 = arguments.get_item(0)?.extract()?;
            let pause_ns = if seconds > 0.0 { (seconds * 1e9) as i64 + TIMER_NS } else { 0 };
            let due_ns = monotonic_ns() + pause_ns;
            let result = sleep.call1(arguments.py(), arguments)?;
            let late_ns = monotonic_ns() - due_ns;
            if late_ns > 0 {
                recorder.get().add_lag(arguments.py(), late_ns)?;
            }
            PyResult::Ok(result)
        };
        task_set.setattr("_sleep", PyCFunction::new_closure(py, None, None, pause)?)?;
        Ok(true)
    }

    /// Removes the records and returns them: requests, start times, and the outcomes that are new since the last call.
    /// Forgets the lag of users that have ended.
    fn take<'py>(&self, py: Python<'py>) -> PyResult<Taken<'py>> {
        let mut records = self.lock();
        let requests = PyBytes::new(py, records.requests.as_flattened().as_flattened());
        let begun = PyBytes::new(py, records.begun.as_flattened());
        records.requests.clear();
        records.begun.clear();
        let new_outcomes = std::mem::take(&mut records.new_outcomes);
        let paused: Vec<_> = records.lags.values().map(|(greenlet, _)| greenlet.clone_ref(py)).collect();
        drop(records);
        for greenlet in paused {
            if greenlet.getattr(py, intern!(py, "dead"))?.is_truthy(py)? {
                self.lock().lags.remove(&(greenlet.as_ptr() as usize));
            }
        }
        Ok((requests, begun, new_outcomes))
    }

    /// Returns the number of requests in flight, and the start time of the oldest or None.
    fn in_flight(&self) -> (usize, Option<i64>) {
        let records = self.lock();
        let InFlight { starts_ns, free } = &records.in_flight;
        let oldest = starts_ns.iter().copied().min().filter(|&start_ns| start_ns != NO_REQUEST);
        (starts_ns.len() - free.len(), oldest)
    }
}

impl Recorder {
    /// Records a request from the arguments of Locust's event `request`, all of which have names.
    fn record(&self, fields: &Bound<'_, PyDict>) -> PyResult<()> {
        if !self.is_recording() {
            return Ok(());
        }
        let py = fields.py();
        let get = |name| fields.get_item(name);
        let none = || py.None().into_bound(py);
        let response = get(intern!(py, "response"))?
            .filter(|response| response.is_instance(self.responses.bind(py)).unwrap_or(false));
        let status = match &response {
            Some(response) => response.getattr(intern!(py, "status_code"))?.extract::<Option<i64>>()?.unwrap_or(0),
            None => 0,
        };
        let kind = match get(intern!(py, "exception"))? {
            Some(exception) if exception.is_truthy()? => {
                Some(self.failure_kind.call1(py, (&response, status, exception))?)
            }
            _ => None,
        };
        let name = get(intern!(py, "name"))?.unwrap_or_else(none);
        let request_type = get(intern!(py, "request_type"))?.unwrap_or_else(none);
        let number = self.number_outcome((request_type, name, status, kind, response.is_some()).into_pyobject(py)?)?;
        let number_of = |name| match get(name)? {
            Some(number) => number.extract::<Option<f64>>(),
            None => Ok(None),
        };
        let response_time = number_of(intern!(py, "response_time"))?.unwrap_or(f64::NAN);
        let received_bytes = number_of(intern!(py, "response_length"))?.unwrap_or(0.0);
        let lag_ns = self.take_lag(py)?;
        self.lock().requests.push([
            monotonic_ns().to_ne_bytes(),
            number.to_ne_bytes(),
            response_time.to_ne_bytes(),
            lag_ns.to_ne_bytes(),
            received_bytes.to_ne_bytes(),
        ]);
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, Records> {
        self.records.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records the start of a request, and returns its place among the requests in flight.
    fn begin(&self) -> usize {
        let began_ns = monotonic_ns();
        let mut records = self.lock();
        records.begun.push(began_ns.to_ne_bytes());
        records.in_flight.begin(began_ns)
    }

    fn number_outcome(&self, outcome: Bound<'_, PyTuple>) -> PyResult<i64> {
        let outcomes = self.outcomes.bind(outcome.py());
        if let Some(number) = outcomes.get_item(&outcome)? {
            return number.extract();
        }
        let number = outcomes.len();
        outcomes.set_item(&outcome, number)?;
        self.lock().new_outcomes.push(outcome.unbind());
        Ok(number as i64)
    }

    /// Adds schedule lag to the next request of the running greenlet.
    fn add_lag(&self, py: Python<'_>, lag_ns: i64) -> PyResult<()> {
        let greenlet = self.get_current.call0(py)?;
        self.lock().lags.entry(greenlet.as_ptr() as usize).or_insert((greenlet, 0)).1 += lag_ns;
        Ok(())
    }

    fn take_lag(&self, py: Python<'_>) -> PyResult<i64> {
        let greenlet = self.get_current.call0(py)?;
        let lag = self.lock().lags.remove(&(greenlet.as_ptr() as usize));
        Ok(lag.map_or(0, |(_, lag_ns)| lag_ns))
    }
}

/// Stands in for the method `request` of a client class, and records its calls.
#[pyclass(frozen)]
struct WatchedRequest {
    #[pyo3(get, name = "__wrapped__")]
    request: Py<PyAny>,
    recorder: Py<Recorder>,
}

#[pymethods]
impl WatchedRequest {
    /// Returns the method of a client. The client keeps it as an attribute, because a method made anew for each request
    /// would cost more. A client of a class with its own `request` keeps that one.
    fn __get__<'py>(
        slf: &Bound<'py, Self>,
        client: Option<&Bound<'py, PyAny>>,
        _owner: Option<&Bound<'py, PyType>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let Some(client) = client else { return Ok(slf.clone().into_any()) };
        let (py, name) = (slf.py(), intern!(slf.py(), "request"));
        let WatchedRequest { request, recorder } = slf.get();
        let request = recorder.get().method.call1(py, (request, client))?;
        let method = Bound::new(py, WatchedMethod { request, recorder: recorder.clone_ref(py) })?.into_any();
        if client.get_type().getattr(name)?.is(slf) {
            client.setattr(name, &method)?;
        }
        Ok(method)
    }

    /// Returns attributes that only the wrapped method has, such as its name.
    fn __getattr__(&self, py: Python<'_>, name: &str) -> PyResult<Py<PyAny>> {
        self.request.getattr(py, name)
    }

    #[pyo3(signature = (*arguments, **options))]
    fn __call__<'py>(
        slf: &Bound<'py, Self>,
        arguments: &Bound<'py, PyTuple>,
        options: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let rest = arguments.get_slice(1, arguments.len());
        Self::__get__(slf, Some(&arguments.get_item(0)?), None)?.call(rest, options)
    }
}

/// The method `request` of one client, which records its calls.
#[pyclass(frozen)]
struct WatchedMethod {
    #[pyo3(get, name = "__wrapped__")]
    request: Py<PyAny>,
    recorder: Py<Recorder>,
}

#[pymethods]
impl WatchedMethod {
    #[pyo3(signature = (*arguments, **options))]
    fn __call__(
        &self,
        py: Python<'_>,
        arguments: &Bound<'_, PyTuple>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Py<PyAny>> {
        let recorder = self.recorder.get();
        let place = recorder.begin();
        let result = self.request.call(py, arguments, options);
        // Locust stops a user with this exception, and does not report the user's request.
        let is_stopped = matches!(&result, Err(error) if error.matches(py, &recorder.greenlet_exit)?);
        let mut records = recorder.lock();
        records.in_flight.end(place);
        records.unanswered += u64::from(is_stopped && recorder.is_recording());
        result
    }

    fn __getattr__(&self, py: Python<'_>, name: &str) -> PyResult<Py<PyAny>> {
        self.request.getattr(py, name)
    }

    /// The method refers to the client, which refers to the method: Python's garbage collector finds the cycle.
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.request)
    }
}

#[pymodule]
mod weir_locust_recorder {
    #[pymodule_export]
    use super::Recorder;
}
